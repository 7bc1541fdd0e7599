// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import com.google.gson.annotations.SerializedName;
import java.util.Locale;

/// The state of the page cache before a run.
public enum Heat {
  /// The page cache holds all bytes of the file.
  @SerializedName("hot")
  HOT,
  /// The page cache holds no byte of the file: the file was dropped, and the kernel confirmed that
  /// no page stayed.
  @SerializedName("cold")
  COLD,
  /// The page cache does not affect the run.
  @SerializedName("none")
  NONE;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
