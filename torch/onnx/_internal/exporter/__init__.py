"""From exported programs to ONNX models, on the packages onnx, onnx_ir and onnxscript. Nothing here
loads them before something is exported."""
