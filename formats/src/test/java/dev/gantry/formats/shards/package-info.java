@NullMarked
package dev.gantry.formats.shards;

import org.jspecify.annotations.NullMarked;
