// Command genheader writes bpf/rm_abi.h: the numbers and offsets of package rm
// that the C side needs. Run it from the module's root after a change:
//
//	go run ./internal/rm/genheader
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "bpf/rm_abi.h", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, header(), 0o644); err != nil {
		log.Fatalf("genheader: %v", err)
	}
}
