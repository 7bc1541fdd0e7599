// SPDX-License-Identifier: Apache-2.0
/// Checks which protobuf the class path has.
@NullMarked
package dev.gantry.formats.internal.protobuf;

import org.jspecify.annotations.NullMarked;
