package limits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlotMatchesClusterKeyslot(t *testing.T) {
	t.Parallel()
	require.Equal(t, uint16(0x31C3), crc16("123456789"))
	for key, slot := range map[string]int{
		"":                             0,
		"123456789":                    12739,
		"foo":                          12182,
		"{foo}.x":                      12182,
		"x{foo}{bar}":                  12182,
		"redisson_lock__channel:{foo}": 12182,
		"bar":                          5061,
		"hello":                        866,
		"{}foo":                        9500,
		"foo{}{bar}":                   8363,
		"foo{{bar}}zap":                4015,
	} {
		require.Equal(t, slot, HashSlot(key), key)
	}
}
