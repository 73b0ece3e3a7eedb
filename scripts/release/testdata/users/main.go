// The programs in this folder consist of this file and one of the others.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ok")
}
