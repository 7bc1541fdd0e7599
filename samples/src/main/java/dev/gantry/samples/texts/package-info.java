// SPDX-License-Identifier: Apache-2.0
/// Programs that continue texts, talk, and turn texts into vectors and classes.
@NullMarked
package dev.gantry.samples.texts;

import org.jspecify.annotations.NullMarked;
