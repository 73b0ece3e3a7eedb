package hold

import (
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/control"
	"github.com/redlatch/redlatch/internal/tool/holding"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// answer is what became of a hold.
type answer control.Answer

// outcome tells how a hold ended, by its error, nil for one that was not lost, and by that of
// giving it up.
func (h *held) outcome(over, unlocked error) answer {
	switch {
	case errors.Is(over, redlatch.ErrMaxHold):
		return answer{holding.CodeFailed, fmt.Sprintf("lock %q was held for %v, which is the most by --max-hold: it was freed", h.name, h.o.MaxHold)}
	case over != nil || errors.Is(unlocked, redlatch.ErrLost):
		return answer{holding.CodeFailed, fmt.Sprintf("lock %q was lost: %s", h.name, h.o.LossOf(over, unlocked))}
	case errors.Is(unlocked, holding.ErrUntold):
		return answer{0, fmt.Sprintf("lock %q was freed, but %v", h.name, unlocked)}
	case unlocked != nil && h.o.AtLeast > 0:
		return answer{0, fmt.Sprintf("warning: lock %q: %s", h.name, sanitize.WithoutPrefix(connect.Reason(unlocked)))}
	case unlocked != nil:
		return answer{0, fmt.Sprintf("lock %q could not be freed and is left to its lease: %s", h.name, sanitize.WithoutPrefix(connect.ReasonAt(unlocked)))}
	}
	return answer{}
}
