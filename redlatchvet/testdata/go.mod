// Programs with mistakes, for the tests of redlatchvet. They use the packages of this checkout.
module example.com/testdata

go 1.25.0

require github.com/redlatch/redlatch v0.0.0

require (
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/google/uuid v1.6.0 // indirect
)

replace github.com/redlatch/redlatch => ../..
