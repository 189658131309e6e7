package coordinator_test

import (
	"testing"

	"ration/coordinator"
	"ration/internal/mirrortest"
	"ration/lease"
)

func TestMemoryIsAMirror(t *testing.T) {
	mirrortest.Run(t, func(t *testing.T) mirrortest.Mirror { return coordinator.NewMemory() })
}

var _ lease.Elector = (*coordinator.Memory)(nil)
