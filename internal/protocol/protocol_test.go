package protocol

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
)

const owner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:7"

func TestBraceRule(t *testing.T) {
	t.Parallel()
	for name, braced := range map[string]string{
		"myLock": "{myLock}",
		"{tag}x": "{tag}x",
		"a{b":    "a{b",
		"a}b":    "{a}b}",
		"":       "{}",
	} {
		require.Equal(t, "redisson_lock__channel:"+braced+":"+owner, OwnerChannel(name, owner))
		require.Equal(t, "redisson_unlock_latch:"+braced+":deadbeef", LatchKey(name, "deadbeef"))
		require.Equal(t, "redisson_lock_token:"+braced, TokenKey(name))
		require.Equal(t, "redisson_rwlock:"+braced, ReadWriteChannel(name))
		require.Equal(t, "redisson_sc:"+braced, SemaphoreChannel(name))
		require.Equal(t, braced+":timeout", PermitsKey(name))
		require.Equal(t, braced+":"+owner+":rwlock_timeout:2", HoldKey(name, owner, 2))
	}
}

func TestCountDownChannelAlwaysAddsBraces(t *testing.T) {
	t.Parallel()
	require.Equal(t, "redisson_countdownlatch__channel__{myLock}", CountDownChannel("myLock"))
	require.Equal(t, "redisson_countdownlatch__channel__{{tag}x}", CountDownChannel("{tag}x"))
}

func TestWriterOfReturnsOwnersOfWritersOnly(t *testing.T) {
	t.Parallel()
	writer, isWriter := WriterOf(WriterField(owner))
	require.True(t, isWriter)
	require.Equal(t, owner, writer)
	for _, other := range []string{owner, ModeField} {
		_, isWriter = WriterOf(other)
		require.False(t, isWriter, other)
	}
}

func TestIsRedlatchChecksUUIDVersion(t *testing.T) {
	t.Parallel()
	ours, err := codec.ParseOwner("0193e6c0-6f00-7000-8000-000000000001:7")
	require.NoError(t, err)
	require.True(t, IsRedlatch(ours))
	redissons, err := codec.ParseOwner(owner)
	require.NoError(t, err)
	for _, theirs := range []codec.Owner{redissons, codec.NewOwner(uuid.New(), 1), codec.NewOwner(uuid.Max, 1), {}} {
		require.False(t, IsRedlatch(theirs))
	}
}
