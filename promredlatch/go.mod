// Metrics for Prometheus: a module of its own, so that client_golang stays out of the go.sum of
// those who do not use it.
module github.com/redlatch/redlatch/promredlatch

go 1.25.0

require (
	github.com/prometheus/client_golang v1.25.0
	github.com/redlatch/redlatch v0.0.0-00010101000000-000000000000
)

replace github.com/redlatch/redlatch => ../
