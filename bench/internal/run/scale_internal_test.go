package run

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMeasurementsInWhichLittleHappensDoNotBecomeShorter(t *testing.T) {
	t.Parallel()
	for _, c := range Cases() {
		length := func(scale float64) float64 {
			r := &Runner{Scale: scale}
			return float64(r.spec(c, party{}, 1).Duration) / float64(c.spec.Duration)
		}
		short := 0.5
		if c.ID == "e" || c.ID == "e-many" || c.ID == "f" || c.ID == "f-million" {
			short = 1
		}
		assert.InDelta(t, short, length(0.5), 1e-9, c.ID)
		assert.InDelta(t, 2, length(2), 1e-9, c.ID)
		assert.InDelta(t, 1, length(0), 1e-9, c.ID)
	}
}
