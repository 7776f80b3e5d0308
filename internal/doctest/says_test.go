package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verb is a format verb, or %%, which is a percent sign.
var verb = regexp.MustCompile(`%(?:%|[-+#0]*(?:\d+|\*)?(?:\.\d+)?[a-zA-Z])`)

// hole stands in a sentence of the program for what it puts in.
const hole = "\x00"

// sentences are the texts in the program's source, tests left out: literals,
// and literals that are put together with what is not known here.
func sentences(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || strings.HasPrefix(n, ".") && n != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			if s := literal(e); strings.Trim(s, hole) != "" {
				all = append(all, s)
				return false
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("found only %d sentences in the program's source", len(all))
	}
	return all
}

// literal is the text of a literal or of a sum with one in it, with a hole for
// what is not a literal; empty where there is none.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return ""
		}
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return verb.ReplaceAllStringFunc(s, func(v string) string {
			if v == "%%" {
				return "%"
			}
			return hole
		})
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return ""
		}
		x, y := literal(e.X), literal(e.Y)
		if x == "" && y == "" {
			return ""
		}
		if x == "" {
			x = hole
		}
		if y == "" {
			y = hole
		}
		return x + y
	}
	return ""
}

// quotes tells whether a line of a document quotes a sentence: its pieces
// between `…` are there, in their order, and a hole of the program's is never
// passed over in silence.
func quotes(line, sentence string) bool {
	at := 0
	for i, piece := range strings.Split(line, anything) {
		if piece = strings.TrimSpace(piece); piece == "" {
			continue
		}
		n := strings.Index(sentence[at:], piece)
		if n < 0 || i > 0 && n == 0 {
			return false
		}
		at += n + len(piece)
	}
	return true
}

// Each sentence that a document quotes is in the program.
func TestQuotedSentences(t *testing.T) {
	all := sentences(t)
	quoted := 0
	for _, path := range documents(t) {
		name, _ := filepath.Rel(root, path)
		bs, err := blocks(read(t, path))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, b := range bs {
			if b.kind != "says" {
				continue
			}
		lines:
			for i, l := range b.lines {
				if len(strings.Trim(l, " "+anything)) < 8 {
					t.Errorf("%s:%d: %q is too short to be a quotation", name, b.line+i, l)
					continue
				}
				quoted++
				for _, s := range all {
					if quotes(l, s) {
						continue lines
					}
				}
				t.Errorf("%s:%d: the program does not say %q (… stands for what it puts in)", name, b.line+i, l)
			}
		}
	}
	if quoted == 0 {
		t.Fatal("no document quotes the program")
	}
}

func TestQuotes(t *testing.T) {
	const s = "the GSP refused it: " + hole + ", in an RPC of " + hole + " us"
	for line, want := range map[string]bool{
		"the GSP refused it: …, in an RPC of … us": true,
		"the GSP refused it: …":                    true,
		"… in an RPC of … us":                      true,
		"the GSP refused it: in an RPC of … us":    false,
		"the GSP refused it: NV_OK, in an RPC":     false,
		"the driver refused it: …":                 false,
	} {
		if got := quotes(line, s); got != want {
			t.Errorf("quotes(%q) = %v", line, got)
		}
	}
}
