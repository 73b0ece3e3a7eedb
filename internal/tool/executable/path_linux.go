package executable

// Path returns the path of this very program, even if its file was replaced.
func Path() string { return "/proc/self/exe" }
