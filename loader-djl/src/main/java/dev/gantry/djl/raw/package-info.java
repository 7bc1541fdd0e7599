// SPDX-License-Identifier: Apache-2.0
/// Bytes of files, whatever they mean, into memory that is there and out of it.
@NullMarked
package dev.gantry.djl.raw;

import org.jspecify.annotations.NullMarked;
