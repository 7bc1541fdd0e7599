// SPDX-License-Identifier: Apache-2.0
/// Files and folders as the formats use them: small text files, sets of files, locks, and folders that one
/// writer holds.
@NullMarked
package dev.gantry.formats.internal.files;

import org.jspecify.annotations.NullMarked;
