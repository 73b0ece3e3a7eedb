package manual

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// edition is what all pages of a release have alike.
type edition struct{ date, version string }

// documents is where the files of docs are that the help names.
const documents = "https://github.com/redlatch/redlatch/tree/main/docs"

// exitCodes begins the part of a help that says what the exit codes mean.
const exitCodes = "\nExit codes:\n"

// page returns the page of a command.
func (e edition) page(cmd *cobra.Command) string {
	var p roff
	name := pageName(cmd)
	p.macro("TH", strings.ToUpper(name), "1", e.date, strings.TrimSpace("redlatch "+e.version), "Redlatch Manual")
	p.line(".nh") // a name that is broken cannot be copied
	p.line(".ad l")
	p.section("NAME")
	p.line(name + ` \- ` + escaped(lowered(cmd.Short)))
	p.section("SYNOPSIS")
	p.line(synopsis(cmd))

	description, codes, found := strings.Cut(cmd.Long, exitCodes)
	p.section("DESCRIPTION")
	p.text(description)
	if found {
		p.section("EXIT STATUS")
		p.text(codes)
	}
	if !cmd.HasParent() {
		p.section("COMMANDS")
		for _, sub := range documented(cmd)[1:] {
			p.item(`\fB`+escaped(pageName(sub))+`\fR(1)`, sub.Short)
		}
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	p.flags("OPTIONS", cmd.LocalFlags().FlagUsages())
	p.flags("GLOBAL OPTIONS", cmd.InheritedFlags().FlagUsages())
	p.section("EXAMPLES")
	p.code(strings.Split(cmd.Example, "\n"))
	p.section("SEE ALSO")
	if cmd.HasParent() {
		p.line(`\fB` + escaped(pageName(cmd.Root())) + `\fR(1)`)
		p.line(".PP")
	}
	p.line(".UR " + documents)
	p.line("Documents")
	p.line(".UE")
	return p.String()
}

// lowered begins a sentence as one that goes on after a name: Print is print.
// A name such as Redisson keeps its letter.
func lowered(text string) string {
	if strings.HasPrefix(text, "Redisson") {
		return text
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// synopsis returns the line of usage, with what is typed as it stands in bold.
func synopsis(cmd *cobra.Command) string {
	use, _, _ := strings.Cut(cmd.UseLine(), "\n")
	if !cmd.HasParent() {
		use += " COMMAND [flags] [ARG...]"
	}
	words := strings.Fields(use)
	n := slices.IndexFunc(words, func(word string) bool { return word != strings.ToLower(word) || strings.ContainsAny(word, "[{-") })
	if n < 0 {
		n = len(words)
	}
	return strings.TrimSpace(`\fB` + escaped(strings.Join(words[:n], " ")) + `\fR ` + escaped(strings.Join(words[n:], " ")))
}

// usage is a line of help for a flag: its short and its long name, its value and what it does.
var usage = regexp.MustCompile(`^ +(?:-(\w), )?--(\S+)(?: (\S+))? {2,}(\S.*)$`)

// flags adds a section with an item for each flag of a help.
func (p *roff) flags(title, help string) {
	lines := strings.Split(strings.TrimRight(help, "\n"), "\n")
	if lines[0] == "" {
		return
	}
	p.section(title)
	for _, line := range lines {
		part := usage.FindStringSubmatch(line)
		if part == nil {
			panic(fmt.Sprintf("the help of a flag is not as expected: %q", line))
		}
		head := `\fB` + escaped("--"+part[2]) + `\fR`
		if part[1] != "" {
			head = `\fB` + escaped("-"+part[1]) + `\fR, ` + head
		}
		if part[3] != "" {
			head += ` \fI` + escaped(part[3]) + `\fR`
		}
		p.item(head, part[4])
	}
}
