// Package killtest kills a real server, over and over, and compares what it
// acknowledged with what it holds afterwards. It has tests only.
package killtest
