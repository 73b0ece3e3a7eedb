//go:build !unix

package screen

import "os"

func notifyContinued(chan<- os.Signal) {}

func stopJob() {}
