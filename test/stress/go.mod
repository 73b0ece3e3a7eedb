// The nemesis run: a module of its own, because it takes minutes and make test must not.
module github.com/redlatch/redlatch/test/stress

go 1.25.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redlatch/redlatch v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	github.com/yuin/gopher-lua v1.1.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.41.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/redlatch/redlatch => ../../
