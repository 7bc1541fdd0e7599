// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

/// A contender loaded wrong bytes. The message is one line.
public final class WrongBytesException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public WrongBytesException(String message) {
    super(message);
  }
}
