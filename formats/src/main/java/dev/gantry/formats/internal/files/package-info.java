// SPDX-License-Identifier: Apache-2.0
/// Files and folders as the formats use them: metadata reads, errors in Gantry's families, and folders
/// that one writer has for itself.
@NullMarked
package dev.gantry.formats.internal.files;

import org.jspecify.annotations.NullMarked;
