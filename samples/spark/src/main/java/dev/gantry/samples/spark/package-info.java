// SPDX-License-Identifier: Apache-2.0
/// A program for Apache Spark.
@NullMarked
package dev.gantry.samples.spark;

import org.jspecify.annotations.NullMarked;
