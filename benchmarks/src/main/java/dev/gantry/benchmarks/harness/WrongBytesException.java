// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

/// A contender brought other bytes than it should have. Its message is one line.
public final class WrongBytesException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public WrongBytesException(String message) {
    super(message);
  }
}
