package report

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// levels are ticks at given values.
type levels []int

// Ticks is part of plot.Ticker.
func (l levels) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	for _, v := range l {
		ticks = append(ticks, plot.Tick{Value: float64(v), Label: grouped3(float64(v))})
	}
	return ticks
}

// steps are ticks at 1, 2 and 5 of each power of ten. Over more than two powers only these
// have labels.
type steps struct{}

// Ticks is part of plot.Ticker.
func (steps) Ticks(least, most float64) []plot.Tick {
	const slack = 1e-9
	wide := most/least > 100
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(least)); power <= math.Log10(most)+slack; power++ {
		for _, digit := range []float64{1, 2, 5} {
			v := digit * math.Pow(10, power)
			if v < least*(1-slack) || v > most*(1+slack) {
				continue
			}
			tick := plot.Tick{Value: v}
			if digit == 1 || !wide {
				tick.Label = grouped3(v)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// apart returns how far apart even ticks are.
func apart(most float64) float64 { return step(most/5, true) }

// even are five or so ticks that are as far apart, from 0.
type even struct{}

// Ticks is part of plot.Ticker.
func (even) Ticks(_, most float64) []plot.Tick {
	var ticks []plot.Tick
	for v := 0.0; v <= most*1.000001; v += apart(most) {
		ticks = append(ticks, plot.Tick{Value: v, Label: grouped3(v)})
	}
	return ticks
}

// step returns the next of 1, 2 and 5 times a power of ten, upwards or downwards.
func step(x float64, up bool) float64 {
	if x <= 0 {
		return 1
	}
	const slack = 1e-9
	power := math.Pow(10, math.Floor(math.Log10(x)))
	found := power
	for _, digit := range []float64{1, 2, 5, 10} {
		switch v := digit * power; {
		case !up && v <= x*(1+slack):
			found = v
		case up && v >= x*(1-slack):
			return v
		}
	}
	return found
}

// grouped3 writes a number with commas between groups of three digits.
func grouped3(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	whole, rest, fraction := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction {
		return whole + "." + rest
	}
	return whole
}
