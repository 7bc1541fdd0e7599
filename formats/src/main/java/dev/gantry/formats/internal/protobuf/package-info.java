// SPDX-License-Identifier: Apache-2.0
/// Checks the version of protobuf-java on the class path.
@NullMarked
package dev.gantry.formats.internal.protobuf;

import org.jspecify.annotations.NullMarked;
