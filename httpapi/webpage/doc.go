// Package webpage serves the files of a page that is part of the program, so
// that a browser lets the page do nothing but show what this server gives.
package webpage
