package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lay applies a mutant's patch to copies of the sources below root, in dir, and
// gives the file that tells go test to read those instead.
func lay(ctx context.Context, root, dir string, m mutant) (string, error) {
	tree := filepath.Join(dir, m.name)
	replace := map[string]string{}
	for _, file := range m.files {
		from, to := filepath.Join(root, file), filepath.Join(tree, file)
		text, err := os.ReadFile(from)
		if err != nil {
			return "", unfit(m, err.Error())
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		replace[from] = to
	}
	apply := exec.CommandContext(ctx, "git", "apply", "-")
	apply.Dir, apply.Env = tree, ownGit(dir)
	apply.Stdin = bytes.NewReader(m.patch)
	if said, err := apply.CombinedOutput(); err != nil {
		return "", unfit(m, strings.TrimSpace(string(said)))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, m.name+".json")
	return path, os.WriteFile(path, overlay, 0o644)
}

func unfit(m mutant, why string) error {
	return fmt.Errorf("mutants: %s does not apply any more: make the same fault in today's %s, and write the patch anew with git diff -U2\n%s",
		m.name, strings.Join(m.files, " and "), why)
}

// ownGit is an environment in which git sees no repository around dir, and so
// applies a patch to the files as they are, whoever owns them.
func ownGit(dir string) []string {
	env := []string{"GIT_CEILING_DIRECTORIES=" + dir}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			env = append(env, v)
		}
	}
	return env
}
