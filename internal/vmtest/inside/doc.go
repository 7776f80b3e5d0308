// Package inside holds the tests that run as root inside a virtual machine of
// internal/vmtest (build tag vmtest), against the stand-in nvidia module.
package inside
