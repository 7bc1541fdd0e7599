@NullMarked
package dev.gantry.formats.tfrecord;

import org.jspecify.annotations.NullMarked;
