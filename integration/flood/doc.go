// Package flood lets strangers ask for more than there is room for, of everything
// that they can make grow, and checks that memory stays within what the bounds
// admit, that refusals say what is wrong, that others are served meanwhile, and
// that everything is given back afterwards. Its tests are all there is to it.
package flood
