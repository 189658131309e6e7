package diskbackend

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrInUse says that another process has the directory.
	ErrInUse = errors.New("diskbackend: another coordinator has the directory")
	// ErrDamaged says that the file is not what a coordinator left, or never was one
	// of its.
	ErrDamaged = errors.New("diskbackend: the state is damaged, or none of Ration's")
)

// afresh is what can be done where the state is of no use.
const afresh = "put back a copy of it that is whole, or start with another directory, which forgets all that was granted and spent"

// damaged says what is wrong with the file at a path.
func damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %w; nothing was written to it: %s", ErrDamaged, path, fmt.Errorf(format, args...), afresh)
}

// failed says what was being done to a file or folder when it failed, and what
// helps where that is known.
func failed(doing, path string, err error) error {
	help := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		help = "; make room on its disk"
	case errors.Is(err, fs.ErrPermission):
		help = "; let this user read and write it, or give another directory"
	case errors.Is(err, syscall.EROFS):
		help = "; give a directory that can be written"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		help = "; something else has its place: give another directory"
	}
	return fmt.Errorf("diskbackend: %s %s: %w%s", doing, path, err, help)
}
