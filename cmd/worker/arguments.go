package main

import "strings"

// placeholder stands for the line of input.
const placeholder = "{}"

// arguments gives the command line for an item: with it in place of each
// placeholder, or at the end if there is none.
func arguments(command []string, item string) []string {
	found := false
	args := make([]string, len(command), len(command)+1)
	for i, arg := range command {
		found = found || strings.Contains(arg, placeholder)
		args[i] = strings.ReplaceAll(arg, placeholder, item)
	}
	if !found {
		args = append(args, item)
	}
	return args
}
