// Tests that need more than the library's own: other clients, other servers, Java. A
// module of its own: what it brings stays out of users' go.sum.
module github.com/redlatch/redlatch/itest

go 1.26.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	github.com/redlatch/redlatch v0.0.0
	github.com/redlatch/redlatch/adapter/goredis v0.0.0-00010101000000-000000000000
	github.com/redlatch/redlatch/adapter/rueidis v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	github.com/alicebob/miniredis/v2 v2.40.0 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/redlatch/redlatch => ../
	github.com/redlatch/redlatch/adapter/goredis => ../adapter/goredis
	github.com/redlatch/redlatch/adapter/rueidis => ../adapter/rueidis
)
