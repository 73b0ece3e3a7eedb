package manual

import (
	"regexp"
	"strings"
)

// roff is a page in the language of man pages, man(7).
type roff struct{ strings.Builder }

// escaped returns a text as it is written in a page: each character stands for itself, and a hyphen
// is the one that readers can copy into a shell.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

// line adds a line that is roff already.
func (p *roff) line(text string) { p.WriteString(text + "\n") }

// macro adds a request with arguments that need no escapes.
func (p *roff) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, arg := range args {
		p.WriteString(` "` + arg + `"`)
	}
	p.WriteString("\n")
}

// section begins a section.
func (p *roff) section(title string) { p.line(".SH " + title) }

// item adds a head, which is roff already, and below it what it means.
func (p *roff) item(head, text string) {
	p.line(".TP")
	p.line(head)
	p.words(text)
}

// words adds a text that is broken into lines anew.
func (p *roff) words(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.verbatim(strings.TrimSpace(line))
	}
}

// code adds lines that stay as they are, but for the indentation that all have.
func (p *roff) code(lines []string) {
	margin := len(lines[0])
	for _, line := range lines {
		if line != "" {
			margin = min(margin, len(line)-len(strings.TrimLeft(line, " ")))
		}
	}
	p.line(".RS 4")
	p.line(".nf")
	for _, line := range lines {
		p.verbatim(line[min(margin, len(line)):])
	}
	p.line(".fi")
	p.line(".RE")
}

// verbatim adds a line that is no request, whatever it begins with.
func (p *roff) verbatim(line string) {
	line = escaped(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	p.line(line)
}

// text adds a help text: its paragraphs, and what is indented in it, each in the form that
// it has on the terminal.
func (p *roff) text(text string) {
	begun := false // a paragraph, at which only the first needs no macro
	for _, block := range blocks(text) {
		switch heads, texts := list(block); {
		case heads != nil:
			for i := range heads {
				p.item(`\fB`+escaped(heads[i])+`\fR`, texts[i])
			}
		case indented(block[0]):
			if begun {
				p.line(".PP")
			}
			p.code(block)
		default:
			if begun {
				p.line(".PP")
			}
			p.words(strings.Join(block, "\n"))
		}
		begun = true
	}
}

// blocks parts a text at its empty lines, and where lines begin or end to be indented.
func blocks(text string) [][]string {
	var all [][]string
	fresh := true
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		if line == "" {
			fresh = true
			continue
		}
		if n := len(all) - 1; !fresh && indented(all[n][0]) == indented(line) {
			all[n] = append(all[n], line)
		} else {
			all = append(all, []string{line})
		}
		fresh = false
	}
	return all
}

// indented reports whether a line stands apart from the paragraphs.
func indented(line string) bool { return strings.HasPrefix(line, " ") }

var (
	// entry is the first line of a list: what is explained, and where its explanation begins.
	entry = regexp.MustCompile(`^  (?:(\S.*?) {2,}|- )\S`)
	// gap is what separates the columns of a table.
	gap = regexp.MustCompile(`\S {3,}\S`)
)

// list returns what the lines of a block explain, and the explanations: those of a list whose second
// column all lines share. It returns nothing for all else, tables of more columns among that.
func list(block []string) (heads, texts []string) {
	first := entry.FindString(block[0])
	if first == "" {
		return nil, nil
	}
	column := len(first) - 1
	for _, line := range block {
		if len(line) <= column || line[column-1] != ' ' || line[column] == ' ' || gap.MatchString(line[column:]) {
			return nil, nil
		}
		switch head := strings.TrimSpace(line[:column]); head {
		case "":
			texts[len(texts)-1] += "\n" + line[column:]
		case "-":
			heads, texts = append(heads, "•"), append(texts, line[column:])
		default:
			heads, texts = append(heads, head), append(texts, line[column:])
		}
	}
	return heads, texts
}
