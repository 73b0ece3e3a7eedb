// Package observability checks what deploy has for Prometheus and Grafana:
//
//	rules and their tests       promtool, of Debian's package prometheus
//	expressions of panels       Prometheus' own parser; every metric is in the golden lists
//	panels over a real run      a Redis, clients, redlatch exporter, and a Prometheus that
//	                            scrapes both: no panel is empty, and every rule is healthy
//
// The golden lists are docs/observability/metrics.txt and docs/observability/exporter.txt. The
// real run draws the picture of docs/observability.md, too: make pictures.
//
// It has tests only.
package observability
