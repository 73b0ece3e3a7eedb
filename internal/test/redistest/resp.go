package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReadCommand reads one command.
func ReadCommand(in *bufio.Reader) ([]string, error) {
	n, err := readLength(in, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readLength(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args[i] = string(text[:size])
	}
	return args, nil
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	switch {
	case err != nil:
		return 0, err
	case line[0] != kind:
		return 0, fmt.Errorf("want %c, got %q", kind, line)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(line[1:]), 10, 31)
	return int(n), err
}

// Bulk encodes a bulk string.
func Bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// Array encodes an array of bulk strings.
func Array(texts ...string) string {
	var reply strings.Builder
	fmt.Fprintf(&reply, "*%d\r\n", len(texts))
	for _, text := range texts {
		reply.WriteString(Bulk(text))
	}
	return reply.String()
}
