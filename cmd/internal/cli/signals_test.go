package cli

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestFirstSignalEndsSoftAndSecondHard(t *testing.T) {
	defer goleak.VerifyNone(t)
	soft, hard, restore := Catch(context.Background())
	require.NoError(t, soft.Err())

	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	<-soft.Done()
	require.NoError(t, hard.Err())
	var s *Signal
	require.ErrorAs(t, context.Cause(soft), &s)
	require.Equal(t, 143, s.Code())

	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
	<-hard.Done()
	require.ErrorAs(t, context.Cause(hard), &s)
	require.Equal(t, 130, s.Code())
	restore()
}

func TestRestoreEndsBothWithoutASignal(t *testing.T) {
	defer goleak.VerifyNone(t)
	soft, hard, restore := Catch(context.Background())
	restore()
	<-soft.Done()
	<-hard.Done()
	var s *Signal
	require.NotErrorAs(t, context.Cause(hard), &s)
}
