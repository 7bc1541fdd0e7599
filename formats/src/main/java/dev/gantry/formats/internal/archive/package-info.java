// SPDX-License-Identifier: Apache-2.0
/// Archives that hold tensors: ZIP.
@NullMarked
package dev.gantry.formats.internal.archive;

import org.jspecify.annotations.NullMarked;
