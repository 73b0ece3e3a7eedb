module github.com/redlatch/redlatch/adapter/rueidis

go 1.25.0

require (
	github.com/gomodule/redigo v1.9.3
	github.com/redis/rueidis v1.0.79
	github.com/redlatch/redlatch v0.0.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/redlatch/redlatch => ../..
