// Package executable says where the program is, for programs that start themselves
// once more.
package executable
