#!/usr/bin/env bash
# Makes what people install, in dist/: a tarball for each architecture, a .deb of
# each, and a .deb of the companion module's source for DKMS. The same commit
# gives the same tarballs.
#
#   ARCHES="amd64 arm64"   architectures to build for
#   VERSION, COMMIT        what the program says of itself
#
# NVML needs cgo. For an architecture without a C compiler here the program is
# built without NVML, which its package says.
set -euo pipefail
cd "$(dirname "$0")/../.."

GO=${GO:-go}
# The newest one whose dependencies the module proxy has.
NFPM="$GO run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.1"
ARCHES=${ARCHES:-amd64 arm64}
COMMIT=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
host=$($GO env GOHOSTARCH)
out=$PWD/dist
stage=$out/stage

# A version as packages want one: it begins with a digit, and one between
# releases sorts before the next.
case $VERSION in
v[0-9]*) package_version=${VERSION#v} ;;
[0-9]*.[0-9]*) package_version=$VERSION ;;
*) package_version="0.0.0~git$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d).${VERSION%-dirty}" ;;
esac
package_version=${package_version//-/.}

cc_for() { # the C compiler for an architecture, or nothing
	local cc
	case $1 in
	"$host") cc=${CC:-gcc} ;;
	amd64) cc=x86_64-linux-gnu-gcc ;;
	arm64) cc=aarch64-linux-gnu-gcc ;;
	*) return ;;
	esac
	if command -v "$cc" >/dev/null; then echo "$cc"; fi
}

build() { # ARCH FILE
	local cc ldflags
	ldflags="-s -w -X tsgtop/internal/cli.version=$VERSION -X tsgtop/internal/cli.commit=$COMMIT"
	cc=$(cc_for "$1")
	if [ -n "$cc" ]; then
		CGO_ENABLED=1 CC=$cc GOOS=linux GOARCH=$1 $GO build -trimpath -ldflags "$ldflags" -o "$2" .
	else
		echo "$1: no C compiler for it here: built without NVML"
		CGO_ENABLED=0 GOOS=linux GOARCH=$1 $GO build -trimpath -tags nonvml -ldflags "$ldflags" -o "$2" .
	fi
}

glibc_floor() { # the newest version of glibc's symbols that a program needs; nothing for a static one
	$GO run ./internal/packaging/glibcfloor "$1"
}

rm -rf "$out"
mkdir -p "$stage/common/man" "$stage/common/completions"

# What is the same for all: manual pages and completions, printed by the program itself.
build "$host" "$stage/tsgtop-host"
"$stage/tsgtop-host" man --dir "$stage/common/man"
rm "$stage"/common/man/tsgtop-completion-*.8
gzip -n9 "$stage"/common/man/*.8
"$stage/tsgtop-host" completion bash >"$stage/common/completions/tsgtop.bash"
"$stage/tsgtop-host" completion zsh >"$stage/common/completions/_tsgtop"
"$stage/tsgtop-host" completion fish >"$stage/common/completions/tsgtop.fish"
cp README.md CHANGELOG.md LICENSE "$stage/common/"
cp bpf/LICENSE "$stage/common/LICENSE.GPL-2.0"
mkdir "$stage/common/docs"
cp docs/*.md "$stage/common/docs/"
cp -r docs/grafana "$stage/common/docs/"
chmod -R u=rwX,go=rX "$stage/common"

for arch in $ARCHES; do
	dir=$stage/$arch/tsgtop-$package_version-linux-$arch
	mkdir -p "$dir"
	cp -r "$stage"/common/. "$dir/"
	if [ "$arch" = "$host" ]; then mv "$stage/tsgtop-host" "$dir/tsgtop"; else build "$arch" "$dir/tsgtop"; fi
	chmod 755 "$dir/tsgtop"
	floor=$(glibc_floor "$dir/tsgtop")
	if [ -n "$floor" ]; then echo "$arch: needs glibc $floor"; else echo "$arch: needs no glibc"; fi
	tar -C "$stage/$arch" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - "$(basename "$dir")" |
		gzip -n9 >"$out/tsgtop-$package_version-linux-$arch.tar.gz"

	depends=""
	[ -z "$floor" ] || depends="depends: ['libc6 (>= $floor)']"
	cat >"$stage/$arch/nfpm.yaml" <<YAML
name: tsgtop
arch: $arch
platform: linux
version: $package_version
version_schema: none
maintainer: tsgtop maintainers <maintainers@tsgtop.invalid>
section: utils
priority: optional
license: Apache-2.0
description: |
  top, strace and a scalpel for the NVIDIA GPU scheduler
  Shows who holds an NVIDIA GPU's engines and for how long, streams the calls
  that shape the schedule, and lets an operator preempt or re-timeslice one TSG,
  with an honest answer to whether the hardware changed.
$depends
suggests: [tsgtop-dkms, prometheus]
contents:
  - {src: $dir/tsgtop, dst: /usr/bin/tsgtop, file_info: {mode: 0755}}
  - {src: $dir/man/*.gz, dst: /usr/share/man/man8/}
  - {src: $dir/completions/tsgtop.bash, dst: /usr/share/bash-completion/completions/tsgtop}
  - {src: $dir/completions/_tsgtop, dst: /usr/share/zsh/vendor-completions/_tsgtop}
  - {src: $dir/completions/tsgtop.fish, dst: /usr/share/fish/vendor_completions.d/tsgtop.fish}
  - {src: $dir/README.md, dst: /usr/share/doc/tsgtop/README.md}
  - {src: $dir/CHANGELOG.md, dst: /usr/share/doc/tsgtop/CHANGELOG.md}
  - {src: $dir/docs, dst: /usr/share/doc/tsgtop/docs, type: tree}
  - {src: $dir/LICENSE, dst: /usr/share/doc/tsgtop/copyright}
  - {src: $dir/LICENSE.GPL-2.0, dst: /usr/share/doc/tsgtop/LICENSE.GPL-2.0}
YAML
	$NFPM package -f "$stage/$arch/nfpm.yaml" -p deb -t "$out/tsgtop_${package_version}_$arch.deb"
done

# The module's source. It is built on the machine that it runs on.
src=$stage/dkms/tsgtop-$package_version
mkdir -p "$src/scripts"
cp kmod/*.c kmod/*.h kmod/Kbuild kmod/Makefile kmod/LICENSE kmod/README.md "$src/"
cp kmod/scripts/* "$src/scripts/"
sed "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$package_version\"/" kmod/dkms.conf >"$src/dkms.conf"
chmod -R u=rwX,go=rX "$src"
sed "s/@VERSION@/$package_version/" internal/packaging/dkms-postinst.sh >"$stage/dkms/postinst"
sed "s/@VERSION@/$package_version/" internal/packaging/dkms-prerm.sh >"$stage/dkms/prerm"
cat >"$stage/dkms/nfpm.yaml" <<YAML
name: tsgtop-dkms
arch: all
platform: linux
version: $package_version
version_schema: none
maintainer: tsgtop maintainers <maintainers@tsgtop.invalid>
section: kernel
priority: optional
license: GPL-2.0
description: |
  companion kernel module of tsgtop (DKMS source)
  Sleepable kfuncs over the unmodified nvidia.ko. Not needed for anything but
  sending commands from eBPF; without it tsgtop borrows a descriptor.
depends: [dkms, dwarves]
recommends: [tsgtop]
contents:
  - {src: $src, dst: /usr/src/tsgtop-$package_version, type: tree}
  - {src: kmod/LICENSE, dst: /usr/share/doc/tsgtop-dkms/copyright}
scripts:
  postinstall: $stage/dkms/postinst
  preremove: $stage/dkms/prerm
YAML
$NFPM package -f "$stage/dkms/nfpm.yaml" -p deb -t "$out/tsgtop-dkms_${package_version}_all.deb"

rm -rf "$stage"
(cd "$out" && sha256sum -- *.tar.gz *.deb >SHA256SUMS && ls -l)
