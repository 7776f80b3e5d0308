// Package config reads the configuration: the machine's, which root wrote, and
// the operator's own. It never writes one.
//
// What decides what root does (whether commands may be sent, where the audit
// log is) counts only from a file that nobody but root can have written. An
// ordinary user's file, which may be a link to something secret, is opened with
// that user's rights, and no error quotes what stands in a file.
package config
