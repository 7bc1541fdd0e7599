// SPDX-License-Identifier: Apache-2.0
/// What DJL's engine of ours finds by the service loader.
@NullMarked
package dev.gantry.models.internal;

import org.jspecify.annotations.NullMarked;
