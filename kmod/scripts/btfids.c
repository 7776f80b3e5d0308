// SPDX-License-Identifier: GPL-2.0
/*
 * btfids MODULE.ko BASE.btf: fills the module's .BTF_ids section, which names
 * its kfuncs, with the ids of its .BTF section.
 *
 * The kernel's build does this with resolve_btfids; headers packages of many
 * distributions do not carry that program. BASE.btf is raw BTF, such as
 * /sys/kernel/btf/vmlinux, the same that pahole made the module's BTF on.
 * Needs nothing but a C library. Only what kernel modules contain is handled:
 * 64-bit ELF, BTF functions, sets of (id, flags).
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BTF_MAGIC 0xeb9f
#define KIND_FUNC 12

struct btf_header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len, type_off, type_len, str_off, str_len;
};

struct btf_type {
	uint32_t name_off, info, size_or_type;
};

struct btf {
	const struct btf_header *h;
	const char *types, *strings;
	size_t size;
};

static const char *doing = "";

static void die(const char *why)
{
	fprintf(stderr, "btfids: %s: %s\n", doing, why);
	exit(1);
}

static void *map(const char *path, int writable, size_t *size)
{
	int fd = open(path, writable ? O_RDWR : O_RDONLY);
	struct stat st;
	void *p;

	doing = path;
	if (fd < 0 || fstat(fd, &st) < 0)
		die("cannot be opened");
	*size = st.st_size;
	if (!writable) {	/* sysfs files cannot be mapped on every kernel */
		size_t n = 0;
		ssize_t got = 1;

		p = malloc(*size + 1);
		while (p && n < *size && (got = read(fd, (char *)p + n, *size - n)) > 0)
			n += got;
		if (!p || n != *size)
			die("cannot be read");
	} else {
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			die("cannot be mapped");
	}
	close(fd);
	return p;
}

static struct btf parse(const void *data, size_t size)
{
	struct btf b = { .h = data };

	if (size < sizeof(*b.h) || b.h->magic != BTF_MAGIC)
		die("is not BTF of this machine's byte order");
	if ((uint64_t)b.h->hdr_len + b.h->type_off + b.h->type_len > size ||
	    (uint64_t)b.h->hdr_len + b.h->str_off + b.h->str_len > size)
		die("is BTF cut short");
	b.types = (const char *)data + b.h->hdr_len + b.h->type_off;
	b.strings = (const char *)data + b.h->hdr_len + b.h->str_off;
	b.size = b.h->type_len;
	return b;
}

/* Bytes that follow a type's common part, by its kind. */
static size_t extra(uint32_t info)
{
	size_t n = info & 0xffff;

	switch (info >> 24 & 0x1f) {
	case 1: case 14: case 17:	/* INT, VAR, DECL_TAG */
		return 4;
	case 3:				/* ARRAY */
		return 12;
	case 4: case 5: case 15: case 19: /* STRUCT, UNION, DATASEC, ENUM64 */
		return n * 12;
	case 6: case 13:		/* ENUM, FUNC_PROTO */
		return n * 8;
	}
	return 0;
}

/* The id of a function by name, or how many types there are if name is NULL. */
static uint32_t find(const struct btf *b, uint32_t first, uint32_t strings_before, const char *name)
{
	uint32_t id = first;
	size_t at = 0;

	while (at + sizeof(struct btf_type) <= b->size) {
		const struct btf_type *t = (const void *)(b->types + at);
		uint32_t off = t->name_off - strings_before;

		if (name && (t->info >> 24 & 0x1f) == KIND_FUNC && t->name_off >= strings_before &&
		    off < b->h->str_len && !strcmp(b->strings + off, name))
			return id;
		at += sizeof(*t) + extra(t->info);
		id++;
	}
	return name ? 0 : id;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	const Elf64_Shdr *sections, *btf_sec = NULL, *ids = NULL, *sym_sec = NULL;
	size_t size = 0, base_size = 0;
	const char *names, *symnames;
	const Elf64_Sym *syms;
	struct btf base, own;
	uint32_t first;
	char *file;
	void *data;
	size_t i, n;
	int set;

	if (argc != 3) {
		fprintf(stderr, "usage: btfids MODULE.ko BASE.btf\n");
		return 2;
	}
	data = map(argv[2], 0, &base_size);
	base = parse(data, base_size);
	first = find(&base, 1, 0, NULL);
	file = map(argv[1], 1, &size);
	if (size < sizeof(Elf64_Ehdr) || memcmp(file, ELFMAG, SELFMAG) ||
	    file[EI_CLASS] != ELFCLASS64)
		die("is not a 64-bit ELF file");
	sections = (const void *)(file + ((Elf64_Ehdr *)file)->e_shoff);
	names = file + sections[((Elf64_Ehdr *)file)->e_shstrndx].sh_offset;
	for (i = 0; i < ((Elf64_Ehdr *)file)->e_shnum; i++) {
		if (!strcmp(names + sections[i].sh_name, ".BTF"))
			btf_sec = &sections[i];
		else if (!strcmp(names + sections[i].sh_name, ".BTF_ids"))
			ids = &sections[i];
		else if (sections[i].sh_type == SHT_SYMTAB)
			sym_sec = &sections[i];
	}
	if (!ids)
		return 0;	/* no kfuncs, nothing to do */
	if (!btf_sec || !sym_sec)
		die("has no .BTF section or no symbols");
	own = parse(file + btf_sec->sh_offset, btf_sec->sh_size);
	syms = (const void *)(file + sym_sec->sh_offset);
	symnames = file + sections[sym_sec->sh_link].sh_offset;
	n = sym_sec->sh_size / sizeof(*syms);
	/* ids first, then the sets over them, which are sorted by id */
	for (set = 0; set < 2; set++) {
		for (i = 0; i < n; i++) {
			const char *name = symnames + syms[i].st_name;
			uint32_t *at = (uint32_t *)(file + ids->sh_offset + syms[i].st_value);
			char func[256], *end;

			if (syms[i].st_value + 8 > ids->sh_size)
				continue;
			if (set && !strncmp(name, "__BTF_ID__set8__", 16)) {
				at[0] = syms[i].st_size / 8 - 1;
				qsort(at + 2, at[0], 8, by_id);
			} else if (!set && !strncmp(name, "__BTF_ID__func__", 16)) {
				snprintf(func, sizeof(func), "%s", name + 16);
				end = strrchr(func, '_');	/* the name ends with __NUMBER */
				if (!end || end == func || end[-1] != '_')
					die("has a BTF id without a number");
				end[-1] = 0;
				*at = find(&own, first, base.h->str_len, func);
				if (!*at) {
					fprintf(stderr, "btfids: no function %s in the BTF of %s\n",
						func, argv[1]);
					return 1;
				}
			}
		}
	}
	return 0;
}
