// The release program: a module of its own, so that what compares and packs modules stays out of
// users' go.sum.
module github.com/redlatch/redlatch/scripts/release

go 1.26.0

require (
	github.com/redlatch/redlatch v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	golang.org/x/exp v0.0.0-20260811152304-ee035b5b010f
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/redlatch/redlatch => ../..
