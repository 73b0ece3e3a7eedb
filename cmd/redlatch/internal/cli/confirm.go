package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a question. Anything but yes is no.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	fmt.Fprint(out, Fit(out, question+" [y/N] "))
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
