// SPDX-License-Identifier: Apache-2.0
/// Rules that map names of tensors to names of parameters, and lists of names in messages.
@NullMarked
package dev.gantry.djl.internal.names;

import org.jspecify.annotations.NullMarked;
