// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import com.google.gson.annotations.SerializedName;
import java.util.Locale;

/// The place of a file's bytes before a run.
public enum Heat {
  /// All in the page cache.
  @SerializedName("hot")
  HOT,
  /// None in the page cache: it was dropped, and the kernel says that no page stayed.
  @SerializedName("cold")
  COLD,
  /// It does not matter.
  @SerializedName("none")
  NONE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
