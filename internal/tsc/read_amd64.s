#include "textflag.h"

// func Read() uint64
//
// The fence keeps the counter from being read ahead of what comes before.
TEXT ·Read(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
