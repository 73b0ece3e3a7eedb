package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// The values of --output.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatWide = "wide"
	formatName = "name"
)

// Output is a command's output format.
type Output struct {
	NoHeaders bool

	format  string
	formats []string
}

// Register adds --output and --json, for commands that print no table.
func (o *Output) Register(cmd *cobra.Command, about string) {
	o.register(cmd, about, formatJSON, formatYAML)
}

// RegisterTable adds --output, --json and --no-headers.
func (o *Output) RegisterTable(cmd *cobra.Command, about string) {
	o.register(cmd, about, formatJSON, formatYAML, formatWide, formatName)
	o.noHeaders(cmd)
}

// RegisterNames is like RegisterTable, for a table whose only column is the name.
func (o *Output) RegisterNames(cmd *cobra.Command) {
	o.register(cmd, "", formatJSON, formatYAML, formatName)
	o.noHeaders(cmd)
}

func (o *Output) noHeaders(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "print no heading and no total")
}

func (o *Output) register(cmd *cobra.Command, about string, formats ...string) {
	o.formats = formats
	f := cmd.Flags()
	f.VarP(o, "output", "o", "output format: "+o.choices()+about)
	f.Var((*jsonFlag)(o), "json", "the same as -o json")
	f.Lookup("json").NoOptDefVal = "true"
	CompleteValues(cmd, "output", formats...)
}

func (o *Output) choices() string {
	return strings.Join(o.formats[:len(o.formats)-1], ", ") + " or " + o.formats[len(o.formats)-1]
}

// String returns the format.
func (o *Output) String() string { return o.format }

// Set sets the format.
func (o *Output) Set(format string) error {
	switch {
	case !slices.Contains(o.formats, format):
		return fmt.Errorf("must be %s", o.choices())
	case o.format != "" && o.format != format:
		return fmt.Errorf("the output format is already %s", o.format)
	}
	o.format = format
	return nil
}

// Type names the values in help.
func (*Output) Type() string { return "format" }

// jsonFlag sets the format to JSON.
type jsonFlag Output

func (o *jsonFlag) String() string { return strconv.FormatBool(o.format == formatJSON) }
func (*jsonFlag) Type() string     { return "bool" }
func (o *jsonFlag) Set(s string) error {
	on, err := strconv.ParseBool(s)
	switch {
	case err != nil:
		return err
	case on:
		return (*Output)(o).Set(formatJSON)
	case o.format == formatJSON:
		o.format = ""
	}
	return nil
}

// Structured reports whether the format is JSON or YAML.
func (o *Output) Structured() bool { return o.format == formatJSON || o.format == formatYAML }

// Wide reports whether each lock is one line with all columns.
func (o *Output) Wide() bool { return o.format == formatWide }

// Names reports whether only names are printed.
func (o *Output) Names() bool { return o.format == formatName }

// Print prints what as a structured document, or else calls text.
func (o *Output) Print(cmd *cobra.Command, what any, text func(io.Writer)) error {
	if o.Structured() {
		return o.Document(cmd.OutOrStdout(), what)
	}
	text(cmd.OutOrStdout())
	return nil
}

// Document prints the whole output.
func (o *Output) Document(w io.Writer, what any) error {
	if o.format == formatYAML {
		return printYAML(w, what)
	}
	return printJSON(w, what, "  ")
}

// Item prints an element of a list of unknown length, as a line of JSON or as an element of a YAML sequence.
func (o *Output) Item(w io.Writer, what any) error {
	if o.format == formatYAML {
		return printYAML(w, []any{what})
	}
	return printJSON(w, what, "")
}

// NoItems ends a list without elements.
func (o *Output) NoItems(w io.Writer) {
	if o.format == formatYAML {
		fmt.Fprintln(w, "[]")
	}
}

func marshal(what any, indent string) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false) // command lines in it contain &
	err := enc.Encode(what)
	return text.Bytes(), err
}

func printJSON(w io.Writer, what any, indent string) error {
	text, err := marshal(what, indent)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, escaped(string(text), func(r rune) string {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}))
	return err
}

// printYAML prints the same content as JSON, in the same order. It quotes all strings, because YAML 1.1 would read
// names such as no, 1:30 or 1e3 as other types.
func printYAML(w io.Writer, what any) error {
	text, err := marshal(what, "")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	node, err := nodeOf(d, yaml.DoubleQuotedStyle)
	if err != nil {
		return err
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return err
	}
	_, err = io.WriteString(w, escaped(out.String(), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }))
	return err
}

func nodeOf(d *json.Decoder, style yaml.Style) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: style}
	switch token := token.(type) {
	case string:
		n.Value = token
		return n, nil
	case json.Number: // YAML reads each of JSON's numbers as the same number
		n.Value, n.Tag, n.Style = token.String(), "", 0
		return n, nil
	case json.Delim:
		return containerOf(d, token)
	}
	return n, n.Encode(token)
}

func containerOf(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for d.More() {
		style := yaml.DoubleQuotedStyle
		if open == '{' && len(n.Content)%2 == 0 {
			style = 0 // a mapping's key
		}
		child, err := nodeOf(d, style)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := d.Token()
	return n, err
}

// escaped replaces characters that may affect a terminal. In JSON and YAML, they occur only in quoted strings.
func escaped(text string, beyond func(rune) string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsGraphic(r) || r == '\n':
			b.WriteRune(r)
		case r > 0xffff:
			b.WriteString(beyond(r))
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Name returns a lock's name as one word for -o name. It writes special bytes as \0NNN in octal, which every shell's
// printf %b decodes.
func Name(name string) string {
	var b strings.Builder
	for i, r := range name {
		size := len(string(r))
		switch {
		case r == unicode.ReplacementChar && !strings.HasPrefix(name[i:], string(r)): // not UTF-8
			size = 1
		case unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune(`"'\*?[`, r) && (r != '-' || i > 0):
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(name[i : i+size]) {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}
