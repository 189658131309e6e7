package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker in releases.
var version = ""

// Version is what this binary was built from, as in semantic versioning: the
// release, or else what the Go toolchain recorded.
func Version() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		if v, ok := strings.CutPrefix(build.Main.Version, "v"); ok {
			return v
		}
	}
	return "0.0.0-development"
}

// PrintVersion writes the version of the command called name.
func PrintVersion(name string, s Streams) error {
	_, err := fmt.Fprintf(s.Out, "%s %s %s %s/%s\n", name, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
