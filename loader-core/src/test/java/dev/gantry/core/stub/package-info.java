/// A libcufile and a libcuda without a GPU, and JVMs that run on them.
///
/// Tests that a GPU host runs as well are tagged `gpu`, those that need a stub's controls
/// `gpu-stub`. Neither runs in the build's own JVM: [StubGpuSuiteTest] runs both on the stubs in a
/// JVM of their own.
package dev.gantry.core.stub;
