package cli

// Executable returns the path of this very program, even if its file was replaced.
func Executable() string { return "/proc/self/exe" }
